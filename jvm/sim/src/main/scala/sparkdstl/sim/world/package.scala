// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim

package object world {
  type FaultKind = FaultKind.Kind
}
