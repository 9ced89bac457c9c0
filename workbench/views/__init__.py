"""Views: results as cards, figures and text. They know results, not how they were made."""
