/**
 * Loaded into a daemon: its connections to some ports of this machine go elsewhere, where they can be cut. All members of a
 * fleet have the same address of the notebook, so it cannot be in their configuration. The file with the addresses is read
 * at each connection, as a name is resolved again after a server has moved.
 */
import { readFileSync } from 'node:fs';
import net from 'node:net';

const file = process.env['LABFEED_TEST_ADDRESSES'];
const { connect } = net.Socket.prototype;

net.Socket.prototype.connect = function (...args) {
  const isNormal = Array.isArray(args[0]);
  const list = isNormal ? args[0] : args;
  const isObject = typeof list[0] === 'object' && list[0] !== null;
  const port = isObject ? list[0].port : list[0];
  const other = JSON.parse(readFileSync(file, 'utf8'))[port];
  if (other === undefined) return connect.apply(this, args);
  if (isObject) Object.assign(list[0], other);
  else list.splice(0, typeof list[1] === 'string' ? 2 : 1, other.port, other.host);
  return connect.apply(this, args);
};
