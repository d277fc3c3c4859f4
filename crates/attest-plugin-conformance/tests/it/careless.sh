#!/bin/sh
# Keeps the rules of the document and no other: it trusts the core in everything.
while IFS= read -r message; do
    id=$(printf '%s' "$message" | jq .id)
    case $(printf '%s' "$message" | jq -r .kind) in
    hello) printf '{"v":1,"id":%s,"kind":"hello_ok","name":"careless","version":"1","protocol":1,"hooks":["step.post"],"deterministic":true}\n' "$id" ;;
    shutdown) exit 0 ;;
    *) printf '{"v":1,"id":%s,"kind":"verdict","decision":"allow"}\n' "$id" ;;
    esac
done
