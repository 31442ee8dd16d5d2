# SPDX-License-Identifier: PostgreSQL
# For the examples: a throw-away PostgreSQL, a Pub/Sub server, and what is said to both. To be
# sourced by bash in the source tree, with what `make` has built in the PATH.
set -euo pipefail

dir=$(mktemp -d)
project=example-$$
declare -A pullers=()

end()
{
    status=$?
    trap - EXIT
    [ $status = 0 ] || tail -n 20 "$dir"/p*.log >&2
    kill -9 "${pullers[@]}" ${pubsub:-} 2>/dev/null || true
    pg_ctl -s -D "$dir/data" -m immediate stop 2>/dev/null || true
    rm -rf "$dir"
    exit $status
}
trap end EXIT

say()
{
    printf '\n%s\n' "$*"
}

# wait_until SECONDS QUERY: until the query gives t.
wait_until()
{
    local deadline=$((SECONDS + $1))
    until [ "$(psql -XAtqc "$2")" = t ]; do
        if [ $SECONDS -ge $deadline ]; then
            echo "waited $1 seconds for: $2" >&2
            return 1
        fi
        sleep 0.1
    done
}

start_database()
{
    initdb --no-sync --auth=trust --encoding=UTF8 --no-locale "$dir/data" >"$dir/initdb.log"
    pg_ctl -s -w -D "$dir/data" -l "$dir/postgresql.log" -o "-h '' -k $dir" start
    export PGHOST=$dir PGDATABASE=postgres PGOPTIONS='-c client_min_messages=warning'
}

# Google's emulator, or whatever else PUBSUB_EMULATOR_HOST says, or the one of the tests.
start_pubsub()
{
    if [ -n "${PUBSUB_EMULATOR_HOST:-}" ]; then
        return
    fi
    inbox-pubsub --listen 127.0.0.1:0 --port-file "$dir/port" >"$dir/pubsub.log" 2>&1 &
    pubsub=$!
    disown
    for _ in $(seq 300); do
        [ ! -s "$dir/port" ] || break
        sleep 0.1
    done
    export PUBSUB_EMULATOR_HOST=127.0.0.1:$(cat "$dir/port")
}

# call METHOD PATH: a request whose body comes from standard input.
call()
{
    curl -sS --fail-with-body -o "$dir/answer" -X "$1" -H 'Content-Type: application/json' \
        "http://$PUBSUB_EMULATOR_HOST/v1/projects/$project/$2" -d @- || { cat "$dir/answer" >&2; false; }
}

# create TOPIC SUBSCRIPTION FIELDS: FIELDS is JSON, more of the subscription.
create()
{
    echo '{}' | call PUT "topics/$1"
    psql -XAtqc "SELECT jsonb_build_object('topic', 'projects/$project/topics/$1',
        'ackDeadlineSeconds', 10) || '$3'" | call PUT "subscriptions/$2"
}

# publish TOPIC QUERY: a message for each row (n, data, attributes, ordering_key), by n. A request
# may have only messages of one ordering key.
publish()
{
    local body
    psql -XAtqc "SELECT json_build_object('messages', json_agg(json_strip_nulls(json_build_object(
            'data', replace(encode(convert_to(data, 'UTF8'), 'base64'), E'\n', ''),
            'attributes', attributes, 'orderingKey', nullif(ordering_key, ''))) ORDER BY n))
        FROM ($2) m GROUP BY n / 100, ordering_key ORDER BY min(n)" >"$dir/bodies"
    while read -r body; do
        printf '%s' "$body" | call POST "topics/$1:publish"
    done <"$dir/bodies"
}

# start_puller NAME OPTION…
start_puller()
{
    local name=$1
    shift
    inbox-puller "$@" >>"$dir/puller-$name.log" 2>&1 &
    pullers[$name]=$!
    disown
}

# stop_puller SIGNAL NAME
stop_puller()
{
    kill "-$1" "${pullers[$2]}"
    while kill -0 "${pullers[$2]}" 2>/dev/null; do sleep 0.1; done
    unset "pullers[$2]"
}

# verdict FILE: its rows (fact, ok) are shown, and all have to be so.
verdict()
{
    psql -XAtqF ' ' -v ON_ERROR_STOP=1 -f "$1" | sed -e 's/^t /  ok  /' -e 's/^f /  NO  /' | tee "$dir/verdict"
    if [ ! -s "$dir/verdict" ] || grep -q '^  NO' "$dir/verdict"; then
        say 'VERDICT: wrong'
        return 1
    fi
    say 'VERDICT: right'
}
