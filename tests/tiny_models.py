"""Makes ONNX models of a few kilobytes with the files that fastembed reads."""

import json
from pathlib import Path

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    TensorProto,
    ValueInfoProto,
    helper,
    numpy_helper,
    save_model,
)
from tokenizers import Tokenizer, models, pre_tokenizers, processors

DIMENSION = 8
PAD, UNKNOWN = "[PAD]", "[UNK]"


def make_embedder(folder: Path, words: list[str], model_file: str = "model.onnx") -> None:
    """Write a model that returns a fixed random vector for each token, as `last_hidden_state`."""
    vectors = np.random.default_rng(0).normal(size=(len(words) + 2, DIMENSION))
    table = numpy_helper.from_array(vectors.astype(np.float32), "table")
    gather = helper.make_node("Gather", ["table", "input_ids"], ["last_hidden_state"])
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, ["batch", "length", DIMENSION]
    )
    graph = helper.make_graph([gather], "embedder", _inputs(), [output], [table])
    _save(_model(graph), folder, words, model_file)


def make_cross_encoder(
    folder: Path, scores: dict[str, float], model_file: str = "onnx/model.onnx"
) -> None:
    """Write a model that scores a pair of texts by the sum of the `scores` of their words."""
    values = np.array([0, 0, *scores.values()], dtype=np.float32).reshape(-1, 1)
    table = numpy_helper.from_array(values, "table")
    axis = numpy_helper.from_array(np.array([1], dtype=np.int64), "axis")
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["scores"]),
        helper.make_node("ReduceSum", ["scores", "axis"], ["logits"], keepdims=0),
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])
    graph = helper.make_graph(nodes, "cross_encoder", _inputs(), [output], [table, axis])
    _save(_model(graph), folder, list(scores), model_file)


def _model(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _inputs() -> list[ValueInfoProto]:
    names = ("input_ids", "attention_mask")
    return [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in names
    ]


def _save(model: ModelProto, folder: Path, words: list[str], model_file: str) -> None:
    path = folder / model_file
    path.parent.mkdir(parents=True)
    save_model(model, path)
    vocabulary = {word: number for number, word in enumerate([PAD, UNKNOWN, *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(single="$A", pair="$A $B:1")
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"pad_token": PAD, "model_max_length": 64}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"pad_token_id": 0}))
