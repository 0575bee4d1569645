// Package manifest reads, writes, signs and verifies manifest.ini, the first file of an update archive (VEC-OTA-02 to 05, VEC-OTA-09).
//
//	[META]
//	manifest_version=1.0.0          one of Formats
//	update_version=2.0.0.6074       a version (ota.ParseVersion); otherwise code 216
//	ankidev=0                       1: for development robots; 0 if missing
//	num_images=2                    as many as there are image sections
//	reboot_after_install=0          0 if missing
//	qsn=00e20100                    optional: only for the robot with this processor serial number
//	[BOOT]                          one section per image; the set of sections gives the kind of the update:
//	encryption=1                      delta: DELTA; production: BOOT, SYSTEM; factory: ABOOT, RECOVERY, RECOVERYFS
//	delta=0                         1 in DELTA only; may be missing
//	compression=gz                  anything else is code 205
//	wbits=31                        zlib's word for gzip; unused, may be missing
//	bytes=12869632                  of the image, neither compressed nor encrypted
//	sha256=...                      of the same bytes
//	base_version=1.8.0.6051         in DELTA only: the version that the robot must run
//	[SYSTEM]
//	...
//
// The original is read by Python's ConfigParser, so names of keys are case-insensitive, a colon separates as well as an equals sign, and lines that begin with
// # or ; are comments. Its readers disagree about indented lines, repeated keys and repeated sections; those are refused. Unknown keys are ignored,
// unknown sections are not: the sections must fit the kind. encryption other than 0 and 1 is code 210, every other fault code 201.
//
// The signature, manifest.sha256, is RSA (PKCS #1 v1.5) over the SHA-256 of the file, as "openssl dgst -sha256 -sign" makes it.
package manifest
