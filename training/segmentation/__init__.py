"""Training of the speaker segmentation model: data preparation, simulation, training, export and evaluation."""
