"""How a question is answered. `service` is the door; knows nothing of chat or of the console."""
