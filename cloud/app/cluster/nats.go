package cluster

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"kennel/certs/ca"
	"kennel/infra/atomicfile"
	"kennel/infra/cli"
	"kennel/infra/mqtt/brokeradmin/natsserver"
)

// Ports of a NATS server that has a machine, or a pod, of its own.
const (
	natsMQTT, natsServices, natsCluster = "8883", "4222", "6222"
)

// NATSCommand is kenneld nats.
func NATSCommand() *cobra.Command {
	var authorities, secret, out, at, streams, owner string
	var servers, names []string
	days := 365
	cmd := &cobra.Command{
		Use:   "nats",
		Short: "Write the files of the NATS servers that are the robots' broker",
		Long: `Write a folder for each NATS server of a cluster that is the robots' broker: nats.conf, certificates and keys, to be copied to
the server's machine or put into a secret of Kubernetes. A server listens on port 8883 for MQTT, 4222 for kenneld and 6222 for the
other servers. Run it again before the servers' certificates end, with the same -out: the certificate between servers is kept.

-server NAME=HOST says under which name the others, and kenneld, reach a server; give it once, or at least three times. -name is a
name by which robots and kenneld reach the servers together. -secret-file is mqtt.nats.secret_file of the settings: one random secret of at
least 32 characters, which is made if there is none.`,
		Example: `  kenneld nats -ca install/ca -secret-file nats-secret -out nats -name kennel.example.org \
    -server nats-0=nats-0.nats-servers.kennel.svc -server nats-1=nats-1.nats-servers.kennel.svc \
    -server nats-2=nats-2.nats-servers.kennel.svc -at /etc/nats -streams /streams`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := makeSecret(secret); err != nil {
				return err
			}
			keys, err := natsserver.ReadKeys(secret)
			if err != nil {
				return err
			}
			authority, err := ca.Load(authorities)
			if err != nil {
				return err
			}
			l := natsserver.Layout{Dir: out, At: at, Streams: streams, Devices: authority.DeviceBundle(), Services: authority.ServiceBundle()}
			hosts := append([]string{"localhost", "127.0.0.1"}, names...)
			for _, s := range servers {
				name, host, ok := strings.Cut(s, "=")
				if !ok || host == "" || name == "" || name != filepath.Base(name) || strings.HasPrefix(name, ".") {
					return cli.Usage("-server %.80q: want NAME=HOST", s)
				}
				l.Places = append(l.Places, natsserver.Place{Name: name, MQTT: net.JoinHostPort(host, natsMQTT), Services: net.JoinHostPort(host, natsServices),
					Cluster: net.JoinHostPort(host, natsCluster), Bind: "0.0.0.0"})
				hosts = append(hosts, host)
			}
			pair, err := authority.IssueServer(hosts, time.Duration(days)*24*time.Hour)
			if err != nil {
				return err
			}
			l.Chain, l.Key = pair.Chain, pair.Key
			if err := os.MkdirAll(out, 0o700); err != nil {
				return err
			}
			files, err := l.Write(keys)
			if err != nil {
				return err
			}
			if owner != "" {
				if err := giveAway(out, owner); err != nil {
					return err
				}
			}
			return cli.Print(cmd, map[string]any{"files": files, "servers": l.URLs()}, func(t *cli.Table) {
				t.Row("FILE", "MQTT.NATS.SERVERS")
				for i, f := range files {
					t.Row(f, l.URLs()[i])
				}
				t.Text(fmt.Sprintf("The servers' certificate ends in %d days.", days))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&authorities, "ca", "", "folder `DIR` with the authorities (ca.dir of kenneld's settings; required)")
	f.StringVar(&secret, "secret-file", "", "`FILE` with the cluster's secret (required)")
	f.StringVar(&out, "out", "", "folder `DIR` to write to (required)")
	f.StringArrayVar(&servers, "server", nil, "a server, `NAME=HOST` (required)")
	f.StringArrayVar(&names, "name", nil, "a `NAME` by which robots reach the servers")
	f.StringVar(&at, "at", "", "`DIR` where the servers find their folders, if those are copied elsewhere")
	f.StringVar(&streams, "streams", "", "`DIR` for a server's streams (default: streams in its folder)")
	f.StringVar(&owner, "owner", "", "`UID:GID` of the account that the servers run as (default: this account)")
	f.IntVar(&days, "days", days, "days for which the servers' certificate is good")
	for _, name := range []string{"ca", "secret-file", "out", "server"} {
		_ = cmd.MarkFlagRequired(name) // the flags exist
	}
	cli.AddOutput(cmd)
	return cmd
}

// makeSecret makes the file of the cluster's secret, if it is missing, owned like its folder.
func makeSecret(file string) error {
	if exists(file) {
		return nil
	}
	if err := atomicfile.WriteFile(file, []byte(rand.Text()+rand.Text()+"\n"), 0o600); err != nil {
		return err
	}
	fi, err := os.Stat(filepath.Dir(file))
	if err != nil {
		return err
	}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return os.Chown(file, int(st.Uid), int(st.Gid))
	}
	return nil
}

// giveAway makes owner, UID:GID, the owner of everything below dir.
func giveAway(dir, owner string) error {
	u, g, both := strings.Cut(owner, ":")
	uid, uerr := strconv.ParseUint(u, 10, 31)
	gid, gerr := strconv.ParseUint(g, 10, 31)
	if !both || uerr != nil || gerr != nil {
		return cli.Usage("-owner %.80q: want UID:GID", owner)
	}
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, int(uid), int(gid))
	})
}
