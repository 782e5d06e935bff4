"""A fitted model as an ONNX graph: tensors whose arithmetic writes nodes, evidence, and the posterior."""
