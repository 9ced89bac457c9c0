"""Views: results as cards, figures and text, however they were made."""
