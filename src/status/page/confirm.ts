import { h } from './dom.js';

export interface Question {
  readonly title: string;
  /** What will happen, a paragraph each. */
  readonly text: readonly string[];
  readonly action: string;
  /** What is to be filled in before. */
  readonly field?: {
    readonly label: string;
    readonly type: 'number' | 'date';
    readonly value?: string;
  };
}

/** Asks before what cannot be undone. Resolves with what was filled in (or nothing), or undefined if not confirmed. */
export function confirm({ title, text, action, field }: Question): Promise<string | undefined> {
  const input =
    field &&
    h('input', {
      type: field.type,
      id: 'dialog-field',
      required: true,
      value: field.value ?? '',
      ...(field.type === 'number' && { min: '1', step: '1', inputMode: 'numeric' as const }),
    });
  const cancel = h('button', { type: 'button' }, 'Cancel');
  const form = h(
    'form',
    { method: 'dialog' },
    h('h2', { id: 'dialog-title', className: 'dialog-title' }, title),
    ...text.map((paragraph) => h('p', { className: 'dialog-text' }, paragraph)),
    field && h('label', { className: 'dialog-field', attrs: { for: 'dialog-field' } }, field.label, input),
    h('div', { className: 'actions' }, h('button', { type: 'submit', className: 'primary' }, action), cancel),
  );
  const dialog = h('dialog', { attrs: { 'aria-labelledby': 'dialog-title' } }, form);
  const opener = document.activeElement;
  document.body.append(dialog);
  dialog.showModal();
  (input ?? cancel).focus();

  return new Promise((resolve) => {
    let answer: string | undefined;
    cancel.addEventListener('click', () => dialog.close());
    form.addEventListener('submit', () => {
      answer = input?.value ?? '';
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      if (opener instanceof HTMLElement) opener.focus();
      resolve(answer);
    });
  });
}
