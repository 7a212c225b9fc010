"""Training of the embedded engine's neural reader on two CPU cores: `python -m recipes.reader --data DIR --out DIR`.

`pyrag.evaluation.datasets.layout` reads the data sets. `windows` turns a question and a passage into labelled tokens.
`squad` and `hops` make the examples of the two stages. `model` is the network, `training` optimises it, `export` writes
int8 ONNX, and `measuring` scores it. Nothing here is needed to answer questions:
`pyrag.embedded.reader.neural.answerer` does that.
"""
