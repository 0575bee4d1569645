package diag

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/dsnet/compress/bzip2"

	"kennel/edge/env/robotfs"
)

// staging is where an archive is made (VEC-LOG-07).
const staging = "data/diagnostics"

// Bounds of an archive; own defaults.
const (
	collectTime = 15 * time.Second // for all members, which are collected at once
	maxMember   = 1 << 20          // bytes of what a program prints
)

// member is one file of the archive: what the first of these programs prints that the robot has. Those after the first are for development machines,
// where the original's are missing.
type member struct {
	name     string
	programs []string // with arguments
	filter   func(line string) bool
}

// members are those of the original in its order, besides log.txt; gateway and cloud are addresses to ping.
func members(gateway, cloud string) []member {
	ping := func(name, host string) member {
		if host == "" {
			return member{name: name}
		}
		return member{name: name, programs: []string{"ping -c 3 -w 8 " + host}}
	}
	return []member{
		{name: "connman-services.txt", programs: []string{"connmanctl services", "nmcli device", "networkctl list --no-pager"}},
		{name: "dmesg.txt", programs: []string{"dmesg"}},
		{name: "ifconfig.txt", programs: []string{"ifconfig wlan0", "ip address", "cat /proc/net/dev"}},
		{name: "iwconfig.txt", programs: []string{"iwconfig wlan0", "iw dev", "cat /proc/net/wireless"}},
		{name: "netstat-ptlnu.txt", programs: []string{"netstat -ptlnu", "ss -ptlnu", "cat /proc/net/tcp"}},
		ping("ping-anki.txt", cloud), // the original pings its maker, of whose cloud ours has the part
		ping("ping-gateway.txt", gateway),
		{name: "ps.txt", programs: []string{"ps -eo pid,stat,rss,etime,args", "ps"}, filter: ours},
		{name: "top.txt", programs: []string{"top -b -n 1"}},
	}
}

// ours reports whether a line of ps is its head or about a program of a robot: others are no business of a cloud.
func ours(line string) bool {
	for _, word := range []string{"PID", "vic-", "agentd", "robotd", "robotsim"} {
		if strings.Contains(line, word) {
			return true
		}
	}
	return false
}

// Archive collects the ten files of the original's diagnostics into a .tar.bz2 in the folder of outgoing logs, and returns its name.
func (c *Collector) Archive(ctx context.Context, reason string) (name string, err error) {
	if err := c.begin(reason); err != nil {
		return "", err
	}
	dir, derr := c.Logs.Outgoing(c.Root)
	if derr != nil && dir == "" {
		return "", derr
	}
	var b bytes.Buffer
	if err := c.Write(ctx, &b); err != nil {
		return "", fmt.Errorf("diagnostics: %w", err)
	}
	name = "diagnostics-" + c.Thing.Serial() + "-" + c.stamp() + ".tar.bz2"
	// Not made in the folder of outgoing logs, whose quota another program may hold.
	if err := robotfs.CleanTemp(c.Root, staging); err != nil {
		return "", err
	}
	if _, err := c.finish(staging, name, "", b.Bytes()); err != nil {
		return "", err
	}
	to := path.Join(dir, name)
	if reason != "" {
		to += reasonMark + reason
	}
	err = c.Root.MkdirAll(dir, 0o755)
	if err == nil {
		err = c.Root.Rename(path.Join(staging, name), to)
	}
	if err != nil {
		_ = c.Root.Remove(path.Join(staging, name)) // the first error is the one to tell
		return "", err
	}
	return name, errors.Join(robotfs.SyncDir(c.Root, staging), robotfs.SyncDir(c.Root, dir))
}

// Write writes the archive. It needs no consent: the owner's own app may ask for it.
func (c *Collector) Write(ctx context.Context, b *bytes.Buffer) error {
	ctx, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	all := members(gateway(), c.Host())
	texts := make([][]byte, len(all))
	var wg sync.WaitGroup
	for i, m := range all {
		wg.Go(func() { texts[i] = c.collect(ctx, m) })
	}
	wg.Wait()
	var log bytes.Buffer
	if err := Cat(&log, c.Root, maxPart); err != nil {
		return err
	}
	z, err := bzip2.NewWriter(b, nil)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	add := func(name string, content []byte) {
		if err == nil {
			err = t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: c.Now().UTC().Truncate(time.Second)})
		}
		if err == nil {
			_, err = t.Write(content)
		}
	}
	for i, m := range all {
		if m.name == "netstat-ptlnu.txt" { // members are in the order of the alphabet, as in the original
			add("log.txt", log.Bytes())
		}
		add(m.name, texts[i])
	}
	return errors.Join(err, t.Close(), z.Close())
}

// collect returns what a member's first program prints that succeeds; if none does, what all of them print, and why they failed.
func (c *Collector) collect(ctx context.Context, m member) []byte {
	run := c.Run
	if run == nil {
		run = runProgram
	}
	var all []byte
	for _, p := range m.programs {
		words := strings.Fields(p)
		out, err := run(ctx, words[0], words[1:]...)
		if m.filter != nil {
			var kept []byte
			for line := range strings.Lines(string(out)) {
				if m.filter(line) {
					kept = append(kept, line...)
				}
			}
			out = kept
		}
		out = out[max(0, len(out)-maxMember):]
		if err == nil {
			return out
		}
		all = fmt.Appendf(append(all, out...), "! %s: %v\n", p, err)
	}
	if len(all) == 0 {
		return []byte("! no address to check\n")
	}
	return all
}

func runProgram(ctx context.Context, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.WaitDelay = time.Second
	return cmd.CombinedOutput()
}

// gateway returns the address of the default route; "": none. A simulated robot has its machine's.
func gateway() string {
	b, _ := os.ReadFile("/proc/net/route") // no table: no route
	return parseGateway(string(b))
}

// parseGateway finds the default route in the kernel's table: destination 00000000, and the gateway as a little-endian number.
func parseGateway(table string) string {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		var a uint32
		if len(f) < 3 || f[1] != "00000000" {
			continue
		}
		if _, err := fmt.Sscanf(f[2], "%08X", &a); err == nil && a != 0 {
			return net.IPv4(byte(a), byte(a>>8), byte(a>>16), byte(a>>24)).String()
		}
	}
	return ""
}
