"""What operators do to a running stream: publish pages, check it, cut over generations, take pages down."""
