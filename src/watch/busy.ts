import { LabfeedError } from '../errors.js';

/** The file is there and cannot be read now: locked, forbidden, or on a share that does not answer. Try again later. */
export class FileBusyError extends LabfeedError {
  override readonly name = 'FileBusyError';
}
