#!/bin/sh
# Surveys one host: what ssh prints is the survey.
target=$1
host=${target##*@}
file=results/$host.0.json

timeout 180 ssh -n -o BatchMode=yes -o ConnectTimeout=10 -o ServerAliveInterval=15 "$target" \
    @program@ survey --run @run@ --host "$host" --verbs @verbs@ > "$file.part" 2> "logs/$host.log"
code=$?
# 1: a part is missing, and the survey says why.
if [ "$code" -le 1 ] && [ -s "$file.part" ]; then
    mv "$file.part" "$file"
else
    echo "ssh ended with $code: $(tail -n 1 "logs/$host.log")" > "results/$host.failed"
    rm -f "$file.part"
fi
# One host that fails does not end the others.
exit 0
