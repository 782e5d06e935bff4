"""Export of a fitted model to an ONNX graph."""
