"""What a result says, written once: one module per topic makes an answer, and all faces render it in the same way."""
