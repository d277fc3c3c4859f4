#!/bin/bash
# Runs the commands of the driver, one at a time, inside a machine; `shell.py` has the protocol.
# An emulated machine takes long to start a program, so little is started here.
set -u
pipes=/run/e2e-pipes
if [ -p "$pipes/to" ]; then
    exec 3<"$pipes/to" 4>"$pipes/from"
else
    for name in /sys/class/virtio-ports/*/name; do
        if [ "$(<"$name")" = e2e-agent ]; then
            port=${name%/name}
            exec 3<>"/dev/${port##*/}" 4>&3
        fi
    done
fi
export HOME=/root LANG=C.UTF-8
export PATH=/run/current-system/sw/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
cd /root || exit 1
errors=/run/e2e-errors

printf 'hello %s\n' "$(</proc/sys/kernel/random/boot_id)" >&4
while IFS=' ' read -r -u 3 seconds escaped; do
    printf -v command '%b' "$escaped"
    printf 'done ' >&4
    # The answer ends when the last holder of the command's standard output does.
    timeout --kill-after=10 "$seconds" bash -c "set -euo pipefail; $command" \
        3<&- 4>&- </dev/null 2>"$errors" | base64 -w0 >&4
    status=${PIPESTATUS[0]}
    said=
    if [ -s "$errors" ]; then
        said=$(tail -c 65536 "$errors" | base64 -w0)
    fi
    printf ' %s %s\n' "$status" "$said" >&4
done
