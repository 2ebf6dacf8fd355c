"""Named models are data with sources; what follows from their dimensions is computed and agrees."""

import pytest

from harness.errors import KataError
from harness.models import FILE, find_model, load_models

# what Llama's parts do not make up: MLA, sinks and biases, learned positions
OTHER_PARTS = {"deepseek-v3", "gpt-oss-20b", "gpt-oss-120b", "gpt2"}
TEXT = FILE.read_text(encoding="utf-8")


def edited(tmp_path, old, new):
    assert old in TEXT
    path = tmp_path / "models.toml"
    path.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    return path


@pytest.mark.parametrize("model", [m for m in load_models().values() if m.id not in OTHER_PARTS], ids=lambda m: m.id)
def test_the_dimensions_give_the_published_count(model):
    assert model.counted_parameters() == model.parameters


@pytest.mark.parametrize("name", ["gpt-oss-20b", "gpt-oss-120b"])
def test_sinks_and_biases_are_a_thousandth(name):
    model = find_model(name)

    assert 0 < 1 - model.counted_parameters() / model.parameters < 1e-3


@pytest.mark.parametrize(
    ("name", "size"),
    [("llama-3.1-8b", 131_072), ("llama-3.1-70b", 327_680), ("llama-2-7b", 524_288), ("deepseek-v3", 70_272)],
)
def test_bytes_of_kv_a_token(name, size):
    assert find_model(name).kv_bytes_per_token() == size


def test_names_are_found_however_they_are_written():
    assert find_model("LLAMA 3.1-70b") is find_model("llama-3.1-70b")
    assert find_model("DeepSeek-V3").active == 37_552_297_472
    assert find_model("Llama 3.1 8B").active == 8_030_261_248


def test_an_unknown_model_names_the_nearest_and_all():
    with pytest.raises(KataError) as caught:
        find_model("llama-3.1-7b")

    text = str(caught.value)
    assert text.startswith("model='llama-3.1-7b' is no model that this project has facts on. Did you mean \"llama-")
    assert all(name in text for name in load_models())


def test_shapes_of_the_projections():
    assert find_model("Llama 3.1 70B").projections() == {
        "q": (8192, 8192), "k": (1024, 8192), "v": (1024, 8192), "o": (8192, 8192),
        "gate": (28672, 8192), "up": (28672, 8192), "down": (8192, 28672),
    }  # fmt: skip
    with pytest.raises(KataError, match="MLA"):
        find_model("deepseek-v3").projections()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("layers = 32", "layer = 32", r'models\.llama-3\.1-8b\.layer is no fact of a model\. Did you mean "layers"\?'),
        ("hidden = 4096\n", "", "models.llama-3.1-8b.hidden is missing."),
        ('sources = ["aic", "mlc", "litgpt"]', "sources = []", r"sources=\[\]; expected at least one name"),
        ('sources = ["aic", "mlc", "litgpt"]', 'sources = ["hearsay"]', r"sources=\['hearsay'\]; expected"),
        ("\n[sources]", "\n[sources", "models.toml cannot be read"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path, old, new, message):
    with pytest.raises(KataError, match=message):
        load_models(edited(tmp_path, old, new))


def test_every_source_is_used_and_has_an_address():
    import tomllib

    raw = tomllib.loads(TEXT)
    used = {s for m in raw["models"].values() for s in m["sources"]}

    assert used == set(raw["sources"])
    assert all("https://" in text for text in raw["sources"].values())
