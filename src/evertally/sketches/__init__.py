"""Large domains in bounded memory: sketches of counts, and the heavy prefixes of long names."""
