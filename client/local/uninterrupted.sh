#!/bin/sh
# Runs a program that Ctrl-C at the terminal does not reach: an ignored signal stays ignored over exec.
trap '' INT
exec "$ROLLCALL_WORKERD" "$@"
