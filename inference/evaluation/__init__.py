"""Case files in, figures out."""
