package cluster

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/template"

	"kennel/infra/pg/pgserver"
)

// layout is where everything listens on this machine: on its loopback address, at ports counted from one.
type layout struct {
	dir  string // of the instance
	base int    // first port
}

// Ports, counted from the base.
const (
	portAPI, portMQTT, portStatus = 0, 1, 2 // the doors: people and robots; robots; this page
	portS3                        = 3       //
	portFront                     = 4       // HAProxy's own numbers
	portFleet                     = 5       // the simulated robots' status
	portEtcd, portEtcdPeer        = 8, 9    //
	portPatroni, portPostgres     = 10, 12  // two each
	portKenneld, portMetrics      = 20, 24  // three each
	portNATS                      = 30      // four for each server: MQTT, services, cluster, monitor
	ports                         = 42      // in all
)

func (l layout) addr(port int) string { return "127.0.0.1:" + strconv.Itoa(l.base+port) }

// haproxyText: who comes in is passed through, as in infra/compose/haproxy.cfg, which also limits strangers; here every client is on this machine.
var haproxyText = template.Must(template.New("haproxy.cfg").Parse(`# Written by kenneld cluster.
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  option redispatch 1
  default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions

frontend https
  bind {{.API}}
  use_backend ready if { nbsrv(ready) gt 0 }
  default_backend alive

backend ready
  balance leastconn
  option httpchk
  http-check send meth GET uri /readyz ver HTTP/1.1 hdr Host localhost
  http-check expect status 200
  default-server check check-ssl check-sni localhost verify required ca-file {{.Root}}
{{- range .Kenneld}}
  server {{.Name}} {{.Addr}}
{{- end}}

backend alive
  balance leastconn
{{- range .Kenneld}}
  server {{.Name}} {{.Addr}} check
{{- end}}

listen mqtt
  bind {{.MQTT}}
  balance leastconn
  default-server slowstart 20s # robots that lost their server do not all go to the one that has just started
{{- range .NATS}}
  server {{.Name}} {{.Addr}} check
{{- end}}

frontend numbers
  mode http
  bind {{.Front}}
  http-request use-service prometheus-exporter if { path /metrics }
`))

// named is a part with its address.
type named struct{ Name, Addr string }

func (l layout) haproxy(root string) ([]byte, error) {
	v := struct {
		API, MQTT, Front, Root string
		Kenneld, NATS          []named
	}{API: l.addr(portAPI), MQTT: l.addr(portMQTT), Front: l.addr(portFront), Root: root}
	for i := range cloudProcesses {
		v.Kenneld = append(v.Kenneld, named{kenneldName(i), l.addr(portKenneld + i)})
	}
	for i := range brokerServers {
		v.NATS = append(v.NATS, named{natsName(i), l.addr(portNATS + 4*i)})
	}
	var b bytes.Buffer
	err := haproxyText.Execute(&b, v)
	return b.Bytes(), err
}

// kenneldText is the configuration of one process of the cloud. The first host of the connection string that takes writes is used.
const kenneldText = `# Written by kenneld cluster.
roles: [all]
log: {level: info, format: json}
postgres: {dsn: %q, password_file: %q}
s3: {endpoint: "http://%s", bucket: kennel, path_style: true, access_key_file: %q, secret_key_file: %q}
mqtt:
  url: "ssl://%s"
  broker: nats
  nats: {servers: [%s], secret_file: %q}
ca: {dir: %q}
api: {listen: "%s", names: [localhost, "127.0.0.1"], public_mqtt: "ssl://%s"}
metrics: {listen: "%s"}
`

func (l layout) kenneld(i int) []byte {
	file := func(name string) string { return filepath.Join(l.dir, "install", "kenneld", name) }
	servers := ""
	for n := range brokerServers {
		if n > 0 {
			servers += ", "
		}
		servers += strconv.Quote("tls://" + l.addr(portNATS+4*n+1))
	}
	return fmt.Appendf(nil, kenneldText, l.dsn(), file("postgres-password"), l.addr(portS3), file("s3-access-key"), file("s3-secret-key"), l.addr(portMQTT), servers,
		l.secretFile(), file("ca"), l.addr(portKenneld+i), l.addr(portMQTT), l.addr(portMetrics+i))
}

// dsn names both Postgres: a connection goes to the one that takes writes.
func (l layout) dsn() string {
	return fmt.Sprintf("postgres://kennel@%s,%s/kennel?sslmode=disable&target_session_attrs=read-write", l.addr(portPostgres), l.addr(portPostgres+1))
}

func (l layout) secretFile() string { return filepath.Join(l.dir, "secrets", "nats") }

// patroniText is the configuration of one Patroni. The standby is synchronous while there is one: what was acknowledged is on both.
const patroniText = `# Written by kenneld cluster.
scope: kennel
name: postgres-%[1]d
restapi: {listen: "%[2]s", connect_address: "%[2]s"}
etcd3: {host: "%[3]s"}
bootstrap:
  dcs:
    ttl: 10
    loop_wait: 1
    retry_timeout: 3
    primary_start_timeout: 0
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      use_slots: true
      parameters: {max_connections: 200, wal_keep_size: 256MB, wal_log_hints: "on"}
  initdb: [{encoding: UTF8}, {locale: C}, data-checksums]
  post_bootstrap: %[4]q
postgresql:
  listen: "%[5]s"
  connect_address: "%[5]s"
  data_dir: %[6]q
  bin_dir: %[7]q
  pgpass: %[8]q
  basebackup: [checkpoint: fast]
  parameters: {unix_socket_directories: %[9]q, timezone: UTC, log_timezone: UTC, password_encryption: scram-sha-256}
  pg_hba:
    - local all postgres scram-sha-256
    - host all all 127.0.0.1/32 scram-sha-256
    - host replication replicator 127.0.0.1/32 scram-sha-256
  authentication:
    superuser: {username: postgres, password: %[10]q}
    replication: {username: replicator, password: %[11]q}
    rewind: {username: postgres, password: %[10]q}
`

// postgresFiles writes the configuration of both Patroni into folders that account owns.
func (l layout) postgresFiles(account pgserver.Account, bin string, read func(name string) (string, error)) (files []string, err error) {
	super, err := read("superuser")
	if err != nil {
		return nil, err
	}
	replicator, err := read("replicator")
	if err != nil {
		return nil, err
	}
	kennel, err := os.ReadFile(filepath.Join(l.dir, "install", "kenneld", "postgres-password"))
	if err != nil {
		return nil, err
	}
	for i := range 2 {
		dir := filepath.Join(l.dir, "pg", strconv.Itoa(i+1))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		in := func(name string) string { return filepath.Join(dir, name) }
		// Patroni gives the script the connection to the new cluster.
		script := fmt.Sprintf("#!/bin/sh\nexec psql -v ON_ERROR_STOP=1 -d \"$1\" -c \"CREATE ROLE kennel LOGIN PASSWORD '%s'\" -c 'CREATE DATABASE kennel OWNER kennel' -c 'GRANT pg_monitor TO kennel'\n",
			bytes.TrimSpace(kennel))
		text := fmt.Appendf(nil, patroniText, i+1, l.addr(portPatroni+i), l.addr(portEtcd), in("create.sh"), l.addr(portPostgres+i), in("data"), bin,
			in("pgpass"), dir, super, replicator)
		for name, b := range map[string][]byte{"create.sh": []byte(script), "patroni.yml": text} {
			if err := os.WriteFile(in(name), b, 0o700); err != nil {
				return nil, err
			}
			if err := account.Own(in(name)); err != nil {
				return nil, err
			}
		}
		if err := account.Own(dir); err != nil {
			return nil, err
		}
		files = append(files, in("patroni.yml"))
	}
	return files, nil
}
