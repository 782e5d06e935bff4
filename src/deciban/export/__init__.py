"""Export of models to SQL, ONNX, JavaScript and Python."""
