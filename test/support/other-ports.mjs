/**
 * Loaded into a daemon: its connections to some ports of this machine go to others, where a proxy can cut them. All members
 * of a fleet have the same address of the notebook, so it cannot be in their configuration.
 */
import net from 'node:net';

const ports = new Map(Object.entries(JSON.parse(process.env['LABFEED_TEST_PORTS'] ?? '{}')));
const { connect } = net.Socket.prototype;

net.Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args;
  const isObject = typeof options === 'object' && options !== null;
  const other = ports.get(String(isObject ? options.port : options));
  if (other === undefined) return connect.apply(this, args);
  if (isObject) options.port = other;
  else args[0] = other;
  return connect.apply(this, args);
};
