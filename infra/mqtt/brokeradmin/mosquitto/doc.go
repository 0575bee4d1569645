// Package mosquitto makes Eclipse Mosquitto, 2.0.11 or newer, a broker of Kennel: its configuration, and the orders that its dynamic
// security plugin takes on $CONTROL/dynamic-security/v1.
//
//	robots      -> listener of the things,   trusts the device authority alone,  name = whole subject  CN=vic:00e20100
//	processes   -> listener of the services, trusts the service authority alone, name = common name    kenneld
//
// Two authorities in one file would let a device certificate called kenneld be a service, so there are two listeners; the plugin is common
// to both, so names of one cannot be names of the other. The authorities must be anchors (see Anchor). The client id that a thing sends is
// replaced by its name. Each thing has a role with its own topics: an ACL file with patterns is no substitute, because Mosquitto grants
// every subscription and only filters deliveries, and so a thing that joined the cloud's shared group would swallow its share of the fleet's
// messages; the plugin refuses the subscription. The plugin must therefore know every thing, by Provision, by Config.Things at each
// connection, or by the file it starts with; until then a thing may log in and do nothing.
//
// Differences from the embedded broker, all harmless to the promises of infra/adr/0001: a forbidden PUBLISH is acknowledged and dropped; a
// thing may retain messages on its own topics (no client gets them: shared subscriptions have none); a session outlives its certificate until
// the next login; a kicked thing's will is not published; refusals and their reasons are in the log, not on the doctor page. A blocked
// thing may log in, because the plugin is not asked about clients with certificates (eclipse-mosquitto issue 2999), and then do nothing; a
// revoked certificate is refused at the handshake by the revocation list (Broker.DeviceCRL), which 2.0.11 reads at its start and at SIGHUP
// (see Reloader); an open session ends by Kick or Block.
//
// A Mosquitto (2.0.11) that cannot read its security file still runs and denies everything to all clients, the services included, until it
// is started with a valid one: see Broker.CheckSecurity.
//
// The plugin of 2.0 writes its whole file for every command, twice for a new thing: about 3 ms with 600 things, 100 ms with 10,000, during
// which no client is served. Provision a new broker for a large fleet with Broker.Write.
package mosquitto
