package hoststats

import (
	"net"
	"net/netip"
)

// network returns the name of the network that an interface of this machine is in, and its address.
func network(iface string) (string, netip.Addr) {
	i, err := net.InterfaceByName(iface)
	if err != nil {
		return "", netip.Addr{}
	}
	addrs, _ := i.Addrs() // none: not valid
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			ip, _ := netip.AddrFromSlice(n.IP)
			return ssid(iface), ip.Unmap()
		}
	}
	return ssid(iface), netip.Addr{}
}
