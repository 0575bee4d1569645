// Package broker is the embedded MQTT broker of one-machine mode and tests: mochi-mqtt behind mutual TLS, with the rule that a thing
// reaches its own topics and nothing else (VEC-FLE-01). It runs as a process of its own, so that killing it is an ordinary event.
//
// Who may come in. TLS asks for a client certificate but does not judge it; the broker does, so that every refusal has a reason that
// reaches the log and, as brokerapi.Refusal, the cloud's doctor page. A leaf of the device authority whose common name is a thing id is
// that thing, and its client id must be the same; a leaf of the service authority named kenneld... is the cloud and may do everything.
// MQTT 3.1.1 has one byte for a refusal: 5 (not authorised) for certificates, 2 (identifier rejected) for client ids, 1 for the version.
//
// What a thing may do. Publish below its own up/ and req/, at QoS 0 or 1, never retained, at most topics.MaxPayload; a last will obeys
// the same rule. Subscribe below its own down/ and res/. A filter outside is answered 0x80; a forbidden PUBLISH ends the connection,
// because 3.1.1 has no negative PUBACK and silence would look like success (AWS IoT Core does the same).
//
// What it does not do. Sessions are always clean and things are granted QoS 0: the application acknowledges and resends (infra/adr/0001),
// and a robot that stops reading must cost the broker neither memory nor a blocked publisher. Retained messages live in memory. A session
// ends when its certificate does. On shutdown wills are not published: a restart of the broker says nothing about the robots; after a
// kill there is no one to publish them, so presence rests on the lease.
package broker
