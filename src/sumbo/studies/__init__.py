"""Studies that outlive a process: their files, their storage, the programs and people that evaluate them."""
