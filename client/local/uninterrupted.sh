#!/bin/sh
# Runs a program that ignores Ctrl-C and the end of the terminal: an ignored signal stays ignored over exec.
trap '' INT HUP
exec "$ROLLCALL_WORKERD" "$@"
