package onebox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
	"syscall"

	"kennel/infra/cli"
	"kennel/infra/errs"
	"kennel/infra/onebox"
)

var hostName = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// uploadPort is where original robots upload to, whatever their configuration says.
const uploadPort = "443"

// admitOriginals opens the robots' port to the network where names for original robots are given, and says why port 443 cannot be served.
// given are the parts whose address the command line names.
func (o *Onebox) admitOriginals(given map[string]bool) error {
	for _, n := range o.Originals {
		if net.ParseIP(n) == nil && (len(n) > 253 || !hostName.MatchString(n)) {
			return cli.Usage("-originals %.80q: want a host name in lower case, or an address", n)
		}
	}
	if len(o.Originals) == 0 && !given["uploads"] {
		return nil
	}
	if len(o.Originals) > 0 && !given["robots"] {
		_, port, err := net.SplitHostPort(o.Listen.Robots)
		if err != nil {
			return err
		}
		o.Listen.Robots = net.JoinHostPort("0.0.0.0", port)
	}
	if !given["uploads"] {
		host, _, err := net.SplitHostPort(o.Listen.Robots)
		if err != nil {
			return errs.New(errs.Invalid, "-listen robots=%s: want host:port", o.Listen.Robots)
		}
		o.Listen.Uploads = net.JoinHostPort(host, uploadPort)
	}
	if o.Listen.Uploads == o.Listen.Robots {
		o.Listen.Uploads = "" // one port for all
		return nil
	}
	l, err := net.Listen("tcp", o.Listen.Uploads)
	if err == nil {
		return l.Close()
	}
	o.advice, o.Listen.Uploads = uploadAdvice(o.Listen.Uploads, o.Listen.Robots, err), ""
	return nil
}

// uploadAdvice says why log uploads do not arrive, and what to do.
func uploadAdvice(addr, robots string, err error) string {
	_, port, _ := net.SplitHostPort(addr)
	_, to, _ := net.SplitHostPort(robots)
	program, self := os.Executable()
	if self != nil {
		program = "kenneld"
	}
	why, do := err.Error(), "free it and start again"
	switch {
	case errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM):
		why, do = "this account may not open it", "type sudo setcap cap_net_bind_service=+ep "+program+" and start again"
	case errors.Is(err, syscall.EADDRINUSE):
		why = "another program has it"
		if text := errs.Public(onebox.CheckListen("uploads", addr, "-listen uploads=HOST:PORT")); strings.Contains(text, " by ") {
			_, by, _ := strings.Cut(text, " by ")
			why, _, _ = strings.Cut(by, ":")
			why += " has it"
		}
		do = "end that program and start again"
	}
	return fmt.Sprintf("Port %s cannot be opened (%s), so log uploads of original robots do not arrive: %s, or forward the port: sudo iptables -t nat -A PREROUTING -p tcp --dport %s -j REDIRECT --to-ports %s.",
		port, why, do, uploadPort, to)
}
