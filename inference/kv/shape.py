"""What one token's keys and values look like in a model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ITEM_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


@dataclass(frozen=True, slots=True)
class Shape:
    """`kv_heads` counts the heads of keys and values, fewer than those of queries under grouped-query
    attention. A sequence's tensor is (layers, 2, kv_heads, tokens, head_dim): keys, then values."""

    layers: int
    kv_heads: int
    head_dim: int
    item_bytes: int

    def __post_init__(self) -> None:
        if min(self.layers, self.kv_heads, self.head_dim, self.item_bytes) < 1:
            raise ValueError(f"every figure of a shape must be at least 1: {self}")

    @property
    def bytes_per_token(self) -> int:
        return 2 * self.layers * self.kv_heads * self.head_dim * self.item_bytes

    def sizes(self, tokens: int) -> tuple[int, int, int, int, int]:
        """The size of a tensor for `tokens` tokens."""
        return (self.layers, 2, self.kv_heads, tokens, self.head_dim)

    @classmethod
    def of_config(cls, config: Mapping[str, Any], dtype: str) -> Self:
        """The shape that a transformers `config.json` describes; of a model of several parts, the text's.
        Raises ValueError when it names no layers or heads, or for an unknown dtype."""
        if dtype not in ITEM_BYTES:
            raise ValueError(f"dtype must be one of {', '.join(ITEM_BYTES)}, not {dtype!r}")
        config = config.get("text_config", config)
        try:
            heads = config["num_attention_heads"]
            return cls(
                layers=config["num_hidden_layers"],
                kv_heads=config.get("num_key_value_heads") or heads,
                head_dim=config.get("head_dim") or config["hidden_size"] // heads,
                item_bytes=ITEM_BYTES[dtype],
            )
        except KeyError as missing:
            raise ValueError(f"the model's configuration says no {missing}") from missing

    @classmethod
    def of_model(cls, model_dir: Path, dtype: str) -> Self:
        """The shape of the model in `model_dir`, from its config.json alone. Raises OSError, ValueError."""
        return cls.of_config(json.loads((model_dir / "config.json").read_text()), dtype)
