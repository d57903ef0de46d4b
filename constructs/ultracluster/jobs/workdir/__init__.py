"""A working folder that travels with a job: an archive, named by its content, in the jobs' bucket."""
