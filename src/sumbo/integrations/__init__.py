"""Where sumbo meets other tools. Nothing in sumbo imports these; each imports the tool that it is named after."""
