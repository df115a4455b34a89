"""The commands of ``mercerless``, a module each; importing one imports nothing heavy."""
