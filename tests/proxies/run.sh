#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kjudge serve behind the proxies of examples/serve, with TLS: hands in, downloads, is refused. Needs
# nginx, caddy, openssl and curl (Debian packages of these names); starts them itself, on free ports.
set -euo pipefail
cd "$(dirname "$0")/../.."
kjudge=${KJUDGE_BINARY:-$PWD/build-dev/bin/kjudge}
for program in nginx caddy openssl curl; do
  command -v "$program" >/dev/null || { echo "proxies: $program is not installed: apt-get install $program" >&2; exit 2; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/kjudge-proxies.XXXXXX")
started=()
clean_up() {
  for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap clean_up EXIT
fail() { echo "proxies: $*" >&2; exit 1; }
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" \
  -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2>/dev/null
export SSL_CERT_FILE=$work/cert.pem KERNELS_TOKEN
mkdir "$work/packages"
head -c 3000000 /dev/urandom >"$work/packages/softmax-1.tar.zst"
KERNELS_TOKEN=$("$kjudge" token add ada --results "$work/results" 2>/dev/null)
printf 'x = 1\n' >"$work/submission.py"

check() {  # NAME URL HTTP_URL
  local name=$1 url=$2 plain=$3 page number=$4
  for _ in $(seq 100); do curl -sf --cacert "$work/cert.pem" "$url/" >/dev/null && break; sleep 0.1; done
  curl -sf --cacert "$work/cert.pem" -D "$work/headers" -o "$work/page" "$url/" || fail "$name: no front page"
  grep -qi '^strict-transport-security: max-age' "$work/headers" || fail "$name: no Strict-Transport-Security"
  grep -qi "^content-security-policy: default-src 'none'" "$work/headers" || fail "$name: no Content-Security-Policy"
  [ "$(curl -s -o /dev/null -w '%{http_code}' "$plain")" = 301 ] ||
    [ "$(curl -s -o /dev/null -w '%{http_code}' "$plain")" = 308 ] || fail "$name: http is not sent to https"
  local etag
  etag=$(sed -n 's/^[Ee][Tt][Aa][Gg]: *\([^\r]*\).*/\1/p' "$work/headers")
  [ "$(curl -s -o /dev/null -w '%{http_code}' --cacert "$work/cert.pem" -H "If-None-Match: $etag" "$url/")" = 304 ] ||
    fail "$name: no 304 for $etag"
  curl -sf --cacert "$work/cert.pem" -o "$work/package" "$url/packages/softmax-1.tar.zst"
  cmp "$work/package" "$work/packages/softmax-1.tar.zst" || fail "$name: the package is another"
  page=$("$kjudge" submit "$work/submission.py" --run ada --challenge softmax --server "$url" --no-wait) ||
    fail "$name: kjudge submit failed"
  [ "$page" = "https://contest.example.org/evaluation/$number.html" ] || fail "$name: the page is $page"
  python3 harness/submit.py "$work/submission.py" --run ada --challenge softmax --server "$url" --no-wait \
    >/dev/null || fail "$name: submit.py failed"
  # Larger than kjudge takes, and larger than the proxy lets through.
  for bytes in 30000000 80000000; do
    head -c "$bytes" /dev/zero | tr '\0' '#' >"$work/large.py"
    local status=0
    timeout 120 "$kjudge" submit "$work/large.py" --run ada --challenge softmax --server "$url" --no-wait --patience 5 \
      2>"$work/said" || status=$?
    [ "$status" = 3 ] || fail "$name: $bytes bytes: exit $status, $(cat "$work/said")"
  done
  # What a client says of its address is not believed.
  curl -s --cacert "$work/cert.pem" -H 'X-Forwarded-For: 6.6.6.6' -o /dev/null "$url/told"
  grep -q ' GET /told 404 ' "$work/access.log" || fail "$name: nothing in the access log"
  ! grep -q 6.6.6.6 "$work/access.log" || fail "$name: a client may name its address"
  echo "proxies: $name: fine"
}

port=$(free_port)
"$kjudge" serve "$work/results" --challenge softmax --unsafe --listen "127.0.0.1:$port" \
  --url https://contest.example.org --packages "$work/packages" --access-log "$work/access.log" >"$work/serve.out" &
started+=($!)

http=$(free_port) https=$(free_port)
{
  # As root its workers would be somebody who cannot read this folder.
  [ "$(id -u)" != 0 ] || echo "user root;"
  echo "pid $work/nginx.pid; error_log $work/nginx.log; daemon off; worker_processes 1; events {} http { access_log off;"
  for kind in client_body proxy fastcgi uwsgi scgi; do echo "${kind}_temp_path $work/nginx-$kind;"; done
  sed -e "s#/etc/letsencrypt/live/contest.example.org/fullchain.pem#$work/cert.pem#" \
    -e "s#/etc/letsencrypt/live/contest.example.org/privkey.pem#$work/key.pem#" -e "s/contest.example.org/localhost/" \
    -e "s/listen 80;/listen 127.0.0.1:$http;/" -e "s/listen 443/listen 127.0.0.1:$https/" \
    -e "s/127.0.0.1:8080/127.0.0.1:$port/" examples/serve/nginx.conf
  echo "}"
} >"$work/nginx.conf"
nginx -e "$work/nginx.log" -c "$work/nginx.conf" &
started+=($!)
check nginx "https://localhost:$https" "http://localhost:$http" 1

http=$(free_port) https=$(free_port)
{
  printf '{\n\tadmin off\n\thttp_port %s\n\thttps_port %s\n\tauto_https disable_certs\n\tdefault_bind 127.0.0.1\n}\n' "$http" "$https"
  sed -e "s#^contest.example.org {#localhost {\n\ttls $work/cert.pem $work/key.pem#" -e "s/127.0.0.1:8080/127.0.0.1:$port/" \
    examples/serve/Caddyfile
} >"$work/Caddyfile"
HOME=$work XDG_DATA_HOME=$work XDG_CONFIG_HOME=$work caddy run --adapter caddyfile --config "$work/Caddyfile" \
  2>"$work/caddy.log" &
started+=($!)
check caddy "https://localhost:$https" "http://localhost:$http" 3
