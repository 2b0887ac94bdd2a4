#!/bin/sh
# Surveys every host in "hosts" through ssh, some at once, and reports on them.
set -u
cd "$(dirname "$0")" || exit
mkdir -p results logs

xargs -P @parallel@ -n 1 sh ./survey-host.sh < hosts
echo "surveyed: nodewise fleet report $(pwd)"
