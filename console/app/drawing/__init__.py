"""What every screen is drawn with: lines of spans, figures, small charts, lists with a cursor."""
