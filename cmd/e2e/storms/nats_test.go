package storms

import (
	"context"
	"encoding/csv"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"kennel/cmd/e2e/housetest"
	"kennel/infra/freeaddr"
	"kennel/infra/mqtt/brokeradmin/natsserver"
)

const natsBroker = "nats"

// TestChaosBehindNATS is TestChaos behind a cluster of three NATS servers and HAProxy: each kill of a broker is the kill of one server. Two servers also lose
// each other while the third sees both, two kinds of processes die at once, and one of each kind (issue 34, what must hold 1). It runs in soak and by make
// cluster-test.
func TestChaosBehindNATS(t *testing.T) {
	if wantsCluster(t) {
		runChaos(t, 20, housetest.Pick(20, 60), natsBroker)
	}
}

// wantsCluster reports whether tests of a cluster of brokers run.
func wantsCluster(t *testing.T) bool {
	t.Helper()
	wanted := housetest.Soak() || os.Getenv("KENNEL_CLUSTER") == "1"
	if !wanted {
		t.Log("three brokers more than this machine may have room for: make cluster-test")
	}
	return wanted
}

// startNATS runs three servers, and HAProxy before them for everyone who speaks MQTT.
func (c *cluster) startNATS(ctx context.Context) {
	t := c.t
	t.Helper()
	path, err := exec.Command("go", "tool", "-n", "github.com/nats-io/nats-server/v2").Output()
	if err != nil {
		t.Fatalf("no nats-server: %v", err)
	}
	secret := filepath.Join(c.dir, "nats-secret")
	if err := os.WriteFile(secret, []byte("a secret of tests, thirty-two characters or more"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := natsserver.ReadKeys(secret)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := c.ca.IssueServer([]string{"localhost", "127.0.0.1"}, 24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	l := natsserver.Layout{Dir: filepath.Join(c.dir, "nats"), Chain: pair.Chain, Key: pair.Key, Devices: c.ca.DeviceBundle(), Services: c.ca.ServiceBundle()}
	for i := range 3 {
		l.Places = append(l.Places, natsserver.Place{Name: fmt.Sprint("nats-", i+1), MQTT: freeaddr.For(t), Services: freeaddr.For(t), Cluster: freeaddr.For(t),
			Monitor: freeaddr.For(t)})
	}
	files, err := l.Write(keys)
	if err != nil {
		t.Fatal(err)
	}
	c.route(l.Places, files)
	behind := map[string]string{}
	c.brokers = nil
	for i, p := range l.Places {
		c.rest = 5 * time.Second // HAProxy sees that it is gone, and that it is back
		c.child(ctx, p.Name, strings.TrimSpace(string(path)), "-c", files[i])
		c.brokers = append(c.brokers, p.Name)
		behind[p.Name] = p.MQTT
	}
	c.rest = 0
	c.balance(ctx, "mqtt", behind)
	for _, p := range l.Places {
		housetest.Await(t, time.Minute, p.Name+" is healthy", func() error {
			r, err := http.Get("http://" + p.Monitor + "/healthz?js-meta-only=true")
			if err != nil {
				return err
			}
			_ = r.Body.Close() // only the status counts
			if r.StatusCode != http.StatusOK {
				return fmt.Errorf("status %d", r.StatusCode)
			}
			return nil
		})
	}
	c.lists = fmt.Sprintf(", nats: {servers: [%q, %q, %q], secret_file: %q}", l.URLs()[0], l.URLs()[1], l.URLs()[2], secret)
}

// balance runs HAProxy at addr[name] before servers, which have names and addresses.
func (c *cluster) balance(ctx context.Context, name string, servers map[string]string) {
	c.t.Helper()
	conf := fmt.Sprintf("defaults\n mode tcp\n timeout connect 2s\n timeout client 1h\n timeout server 1h\n option redispatch 1\nlisten %s\n bind %s\n balance leastconn\n", name, c.addr[name])
	for server, addr := range servers {
		conf += fmt.Sprintf(" server %s %s check inter 1s fall 2 rise 1 slowstart 20s on-marked-down shutdown-sessions\n", server, addr)
	}
	c.addr[name+"-numbers"] = freeaddr.For(c.t)
	conf += fmt.Sprintf("listen numbers\n mode http\n bind %s\n stats enable\n stats uri /\n", c.addr[name+"-numbers"])
	file := filepath.Join(c.dir, "haproxy-"+name+".cfg")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		c.t.Fatal(err)
	}
	haproxy, err := exec.LookPath("haproxy")
	if err != nil {
		haproxy = "/usr/sbin/haproxy" // not in everybody's search path
	}
	c.child(ctx, "haproxy-"+name, haproxy, "-db", "-f", file)
}

// through returns how many connections pass the HAProxy of that name.
func (c *cluster) through(name string) (int, error) {
	r, err := http.Get("http://" + c.addr[name+"-numbers"] + "/;csv")
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	rows, err := csv.NewReader(r.Body).ReadAll()
	if err != nil {
		return 0, err
	}
	for _, row := range rows { // pxname, svname, qcur, qmax, scur
		if row[0] == name && row[1] == "FRONTEND" {
			return strconv.Atoi(row[4])
		}
	}
	return 0, fmt.Errorf("%d rows, none of %s", len(rows), name)
}

// route lets the servers reach each other by wires alone: each is told a way to each other one, and hears from none of another.
func (c *cluster) route(places []natsserver.Place, files []string) {
	c.t.Helper()
	c.routes = make([][]*housetest.Wire, len(places))
	for i, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			c.t.Fatal(err)
		}
		own := "listen: " + strconv.Quote(places[i].Cluster)
		replace := []string{own, own + "\n  advertise: \"127.0.0.1:1\""}
		c.routes[i] = make([]*housetest.Wire, len(places))
		for j, p := range places {
			if i != j {
				c.routes[i][j] = housetest.NewWire(c.t, p.Cluster)
				replace = append(replace, "nats://"+p.Cluster, "nats://"+c.routes[i][j].Addr)
			}
		}
		text := strings.NewReplacer(replace...).Replace(string(b))
		if n := strings.Count(text, "nats://"); n != len(places)-1 || !strings.Contains(text, "advertise") {
			c.t.Fatalf("%s has %d routes, or another form", file, n)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}
