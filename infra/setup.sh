#!/usr/bin/env bash
# Installs what a target needs with the system's package manager, and says so. What it cannot install it names, and stops.
# usage: infra/setup.sh run|test|spoken|arm|dist|bench|cluster
set -euo pipefail

# have_NAME says whether a need is met; package_NAME is the Debian package that meets it.
have_go() { command -v go >/dev/null; }
package_go=golang
have_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }
package_postgres=postgresql
have_gcc() { command -v gcc >/dev/null && echo 'int main(void){return 0;}' | gcc -x c -o /dev/null - 2>/dev/null; }
package_gcc=build-essential
have_qemu() { command -v qemu-arm-static >/dev/null; }
package_qemu=qemu-user-static
have_mosquitto() { command -v mosquitto >/dev/null || [ -x /usr/sbin/mosquitto ]; }
package_mosquitto=mosquitto
have_git() { command -v git >/dev/null; }
package_git=git
have_openssl() { command -v openssl >/dev/null; }
package_openssl=openssl
have_promtool() { command -v promtool >/dev/null; }
package_promtool=prometheus
have_haproxy() { command -v haproxy >/dev/null || [ -x /usr/sbin/haproxy ]; }
package_haproxy=haproxy
have_systemd() { command -v systemd-analyze >/dev/null && command -v systemd-sysusers >/dev/null && command -v systemd-tmpfiles >/dev/null; }
package_systemd=systemd
have_chromium() { command -v chromium >/dev/null; }
package_chromium=chromium
have_node() { command -v node >/dev/null; }
package_node=nodejs
have_cyclictest() { command -v cyclictest >/dev/null; }
package_cyclictest=rt-tests
have_npm() { command -v npm >/dev/null; }
package_npm=npm
have_zstd() { command -v zstd >/dev/null; }
package_zstd=zstd
have_swupdate() { command -v swupdate >/dev/null; }
package_swupdate=swupdate
have_pocketsphinx() { command -v pocketsphinx_batch >/dev/null; }
package_pocketsphinx=pocketsphinx
have_sphinx_model() { [ -e /usr/share/pocketsphinx/model/en-us/en-us-phone.lm.bin ]; }
package_sphinx_model=pocketsphinx-en-us
have_flite() { command -v flite >/dev/null; }
package_flite=flite
have_espeak() { command -v espeak-ng >/dev/null; }
package_espeak=espeak-ng
have_festival() { command -v text2wave >/dev/null; }
package_festival=festival
have_festival_ked() { [ -d /usr/share/festival/voices/english/ked_diphone ]; }
package_festival_ked=festvox-kdlpc16k
have_festival_slt() { [ -d /usr/share/festival/voices/us/cmu_us_slt_arctic_hts ]; }
package_festival_slt=festvox-us-slt-hts
have_grpcio() { /usr/bin/python3 -c 'import grpc.aio' 2>/dev/null; }
package_grpcio=python3-grpcio
have_protobuf() { /usr/bin/python3 -c 'import google.protobuf' 2>/dev/null; }
package_protobuf=python3-protobuf
have_pip() { /usr/bin/python3 -m pip --version >/dev/null 2>&1; }
package_pip=python3-pip
have_setuptools() { /usr/bin/python3 -c 'import setuptools' 2>/dev/null; }
package_setuptools=python3-setuptools
have_wheel() { /usr/bin/python3 -c 'import wheel' 2>/dev/null; }
package_wheel=python3-wheel
have_patroni() { command -v patroni >/dev/null; }
package_patroni=patroni
have_etcd() { command -v etcd >/dev/null; }
package_etcd=etcd-server
have_sox() { command -v sox >/dev/null; }
package_sox=sox

# drivers installs what drives the browser in tests, as infra/browser/package-lock.json names it, unless it is there. The network is asked once.
drivers() {
	local dir log
	dir=$(cd "$(dirname "$0")/browser" && pwd)
	cmp -s "$dir/package-lock.json" "$dir/node_modules/.kennel-lock" && return
	echo "setup: installing what drives the browser into infra/browser/node_modules"
	log=$(mktemp)
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund) >"$log" 2>&1 || {
		tail -n 15 "$log" >&2
		rm -f "$log"
		echo "setup: npm ci in infra/browser failed: it needs the npm registry, once" >&2
		exit 1
	}
	rm -f "$log"
	cp "$dir/package-lock.json" "$dir/node_modules/.kennel-lock"
}

case "${1:-}" in
run) needs=(go postgres pocketsphinx sphinx_model) ;;
test) needs=(go git openssl postgres gcc qemu promtool mosquitto haproxy systemd chromium node npm zstd swupdate pocketsphinx sphinx_model flite espeak sox grpcio protobuf) ;;
spoken) needs=(festival festival_ked festival_slt) ;;
arm) needs=(go gcc qemu flite espeak) ;;
dist) needs=(go git pip setuptools wheel) ;;
bench) needs=(go openssl postgres cyclictest zstd) ;;
cluster) needs=(go postgres haproxy patroni etcd) ;;
*) echo "usage: $0 run|test|spoken|arm|dist|bench|cluster" >&2; exit 2 ;;
esac

missing=()
for n in "${needs[@]}"; do
	if ! "have_$n"; then
		pkg="package_$n"
		missing+=("${!pkg}")
	fi
done
if [ ${#missing[@]} -eq 0 ]; then
	[ "$1" != test ] || drivers
	exit 0
fi

stop() {
	echo "setup: cannot install: ${missing[*]}" >&2
	echo "setup: $1" >&2
	echo "setup: install the package(s) named above with your package manager, then run make again" >&2
	exit 1
}

command -v apt-get >/dev/null || stop "there is no apt-get on this machine"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
	command -v sudo >/dev/null || stop "this needs root, and there is no sudo"
	as_root=(sudo)
	# Ask only where there is someone to answer.
	[ -t 0 ] || as_root=(sudo -n)
fi

echo "setup: installing ${missing[*]}"
log=$(mktemp)
export DEBIAN_FRONTEND=noninteractive
# Debian starts a cluster of its own when it installs Postgres; Kennel's cluster is private, so ask it not to.
conf=/etc/postgresql-common/createcluster.conf
if [[ " ${missing[*]} " == *" postgresql "* ]] && [ ! -e "$conf" ]; then
	"${as_root[@]}" mkdir -p "$(dirname "$conf")" && echo "create_main_cluster = false" | "${as_root[@]}" tee "$conf" >/dev/null ||
		stop "cannot write $conf"
fi
# Nor do we want servers that tests start for themselves to be started for the whole machine.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null && "${as_root[@]}" chmod 755 "$policy" &&
		trap '"${as_root[@]}" rm -f "$policy"' EXIT || stop "cannot write $policy"
fi
"${as_root[@]}" apt-get update -qq || echo "setup: the package lists could not be refreshed; trying with those that are here" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >"$log" 2>&1 ||
	{ tail -n 15 "$log" >&2; rm -f "$log"; stop "apt-get failed"; }
rm -f "$log"
for n in "${needs[@]}"; do
	"have_$n" || { pkg="package_$n"; missing=("${!pkg}"); stop "apt-get installed it, but it is still not to be found"; }
done
[ "$1" != test ] || drivers
