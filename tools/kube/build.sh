#!/bin/sh
# Builds Kubernetes' API server for custom resources (k8s.io/apiextensions-apiserver) from Debian's packages, and unpacks
# etcd: `tools/kube/build.sh FOLDER`. Nothing is installed. Needs apt, dpkg-deb, 2 GB of disk and some minutes.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
mkdir -p "$folder/state/lists/partial" "$folder/cache" "$folder/debs/partial" "$folder/root" "$folder/etc"
: >"$folder/status"
key=/usr/share/keyrings/debian-archive-keyring.gpg
# shellcheck disable=SC2016
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -n 1)
echo "deb [signed-by=$key] $mirror sid main" >"$folder/etc/sources.list"
apt() {
    apt-get -q -o Dir::State="$folder/state" -o Dir::Cache="$folder/cache" -o Dir::State::status="$folder/status" \
        -o Dir::Etc::sourcelist="$folder/etc/sources.list" -o Dir::Etc::sourceparts=- \
        -o Dir::Cache::archives="$folder/debs" -o APT::Sandbox::User=root "$@"
}
apt update
apt -y -d --no-install-recommends install golang-k8s-apiextensions-apiserver-dev golang-go etcd-server
for package in "$folder"/debs/golang-*.deb "$folder"/debs/etcd-server*.deb; do
    dpkg-deb -x "$package" "$folder/root"
done
goroot=$(echo "$folder"/root/usr/lib/go-[0-9]*)
export GOROOT="$goroot" GOPATH="$folder/root/usr/share/gocode" GOCACHE="$folder/cache/go" GO111MODULE=off
export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS=
"$goroot/bin/go" build -o "$folder/apiextensions-apiserver" k8s.io/apiextensions-apiserver
cp "$folder/root/usr/bin/etcd" "$folder/etcd"
dpkg-deb -f "$(echo "$folder"/debs/golang-k8s-apiextensions-apiserver-dev_*.deb)" Version >"$folder/version"
echo "built: $folder/apiextensions-apiserver, $folder/etcd"
