#!/bin/sh
# Runs a program that neither Ctrl-C nor the end of the terminal reaches: an ignored signal stays ignored over exec.
trap '' INT HUP
exec "$ROLLCALL_WORKERD" "$@"
