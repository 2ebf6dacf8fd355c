"""Models: the dimensions of named language models, from ``harness/models.toml``. No torch here.

Every model names where its numbers come from. What follows from the dimensions (bytes of KV, shapes of the projections,
the count of its parameters) is computed here or by ``harness.physics``, not written down twice.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

from harness import physics
from harness.errors import KataError, did_you_mean

FILE = Path(__file__).resolve().parent / "models.toml"


@dataclass(frozen=True)
class Model:
    """One language model. Sizes are counts of elements; ``sources`` names where they were read."""

    id: str
    name: str
    layers: int
    hidden: int
    intermediate: int  # of one expert where there are experts
    q_heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    parameters: int
    sources: tuple[str, ...]
    context: int = 0  # the longest context it was made for; 0: not given
    active_parameters: int = 0  # of one token, in a mixture of experts
    experts: int = 0
    experts_per_token: int = 0
    tied: bool = False  # the output head is the embedding
    qkv_bias: bool = False
    qk_norm: bool = False
    norms: int = 2  # of a layer, beside those of q and k
    gated: bool = True  # whether the MLP has a gate beside its up projection
    kv_elements: int = 0  # kept by a token and layer where that is not K and V: the latent of MLA
    window: int = 0  # keys that a layer with a sliding window sees
    note: str = ""

    @property
    def active(self) -> int:
        """The parameters that one token meets: all of them unless there are experts."""
        return self.active_parameters or self.parameters

    def kv_bytes_per_token(self, bits: float = 16) -> float:
        """Return the bytes that one token keeps in all layers, windows ignored."""
        if self.kv_elements:
            return self.layers * self.kv_elements * bits / 8
        return physics.kv_bytes_per_token(self.layers, self.kv_heads, self.head_dim, bits)

    def weight_bytes(self, format: str = "bfloat16") -> float:
        """Return the bytes of all parameters in one of ``physics.FORMATS``."""
        return physics.weight_bytes(self.parameters, physics.bits_per_weight(format))

    def projections(self) -> dict[str, tuple[int, int]]:
        """Return the weights [outputs, inputs] of one layer (of one expert) by name. Raises KataError for MLA."""
        if self.kv_elements:
            raise KataError(f"{self.name} projects through latents (MLA); its projections have other shapes.")
        q, kv = self.q_heads * self.head_dim, self.kv_heads * self.head_dim
        mlp = {"gate": (self.intermediate, self.hidden)} if self.gated else {}
        mlp |= {"up": (self.intermediate, self.hidden), "down": (self.hidden, self.intermediate)}
        return {"q": (q, self.hidden), "k": (kv, self.hidden), "v": (kv, self.hidden), "o": (self.hidden, q)} | mlp

    def linear_parameters(self) -> int:
        """Return the weights in the projections of all layers and experts. Raises KataError for MLA."""
        sizes = {name: outputs * inputs for name, (outputs, inputs) in self.projections().items()}
        mlp = sum(sizes.pop(name) for name in ("gate", "up", "down") if name in sizes)
        return self.layers * (sum(sizes.values()) + max(1, self.experts) * mlp)

    def counted_parameters(self) -> int:
        """Return the parameters that follow from the dimensions: projections, routers, RMS norms, embeddings.

        Other parts (biases that are not q's, k's and v's, sinks, learned positions, shared experts) are not counted.
        """
        layer = self.norms * self.hidden + self.experts * self.hidden + self.qk_norm * 2 * self.head_dim
        layer += self.qkv_bias * (self.q_heads + 2 * self.kv_heads) * self.head_dim
        tables = (1 if self.tied else 2) * self.vocab * self.hidden
        return self.linear_parameters() + self.layers * layer + self.hidden + tables


@functools.cache
def load_models(file: Path = FILE) -> dict[str, Model]:
    """Return every model of ``file`` by id. Raises KataError for one that lacks or misnames a fact or a source."""
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise KataError(f"{file.name} cannot be read: {error}.") from error
    return {key: _model(file, key, facts, raw.get("sources", {})) for key, facts in raw.get("models", {}).items()}


def find_model(name: str, file: Path = FILE) -> Model:
    """Return the model with this id or name; case, spaces and dashes do not matter.

    Raises:
        KataError: nobody knows it; the message has the nearest name and all of them.
    """
    models = load_models(file)
    for model in models.values():
        if _plain(name) in (_plain(model.id), _plain(model.name)):
            return model
    raise KataError(
        f"model={name!r} is no model that this project has facts on.{did_you_mean(name.lower(), models)} "
        f"There are {', '.join(models)}."
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def _model(file: Path, key: str, facts: Mapping[str, object], sources: Mapping[str, str]) -> Model:
    known = {f.name: f.default is MISSING for f in fields(Model) if f.name != "id"}
    for name in facts.keys() - known:
        raise KataError(f"{file.name}: models.{key}.{name} is no fact of a model.{did_you_mean(name, known)}")
    for name, needed in known.items():
        if needed and name not in facts:
            raise KataError(f"{file.name}: models.{key}.{name} is missing.")
    model = Model(id=key, **facts | {"sources": tuple(facts["sources"])})  # type: ignore[arg-type]
    if not model.sources or set(model.sources) - sources.keys():
        raise KataError(
            f"{file.name}: models.{key}.sources={list(model.sources)!r}; expected at least one name of [sources]: "
            f"{', '.join(sources)}."
        )
    return model
