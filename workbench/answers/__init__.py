"""What a result says, once: one module per topic makes an answer, and all faces render it and know no topic."""
