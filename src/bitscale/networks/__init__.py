"""Networks as data: layers and shapes, run by torch for training and by onnxruntime for encoding."""
