"""Where software comes from: downloads, signed package archives, the mirror in S3, locks, image recipes."""
