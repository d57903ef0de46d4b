"""Model servers on Kubernetes: plain objects, and endpoints of HyperPod's inference operator."""
