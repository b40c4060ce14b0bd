"""Pages of the console, whole or in part: parse, authorise, call one function, present."""
