#!/bin/sh
exec @EMULATOR@ @COMMAND@ "$@"
