#!/bin/sh
# Submits a survey of every host, and a report that begins when all of them have ended.
set -eu
cd "$(dirname "$0")"
mkdir -p results logs

where=@where@
name=nodewise-@run@
if scontrol show partition "$where" >/dev/null 2>&1; then
    set -- --partition="$where"@options@
    sinfo --noheader --Node --partition="$where" --format=%N | sort -u > hosts.part
else
    set --@options@
    scontrol show hostnames "$where" | sort -u > hosts.part
fi
mv hosts.part hosts

# A job for each host and not a task of an array: an array gives no host to its tasks, and where its tasks are bound to
# hosts, Slurm passes over all of them as soon as the host of one is busy or down.
while read -r host; do
    if ! sbatch --parsable --job-name="$name" --nodelist="$host" --deadline=now+@deadline@minutes "$@" \
        survey.sbatch >> jobs 2> "logs/$host.submit"; then
        tail -n 1 "logs/$host.submit" > "results/$host.failed"
    fi
done < hosts

# singleton: after all jobs of this name have ended, whether they did well or not.
sbatch --parsable --job-name="$name" --dependency=singleton "$@" merge.sbatch >> jobs
echo "submitted $(wc -l < hosts) surveys, and the report as job $(tail -n 1 jobs)"
