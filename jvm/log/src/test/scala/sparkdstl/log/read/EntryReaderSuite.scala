// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.RunFixture
import sparkdstl.log.error.DamagedLogException
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Put, Read, Replace}

class EntryReaderSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  test("an entry of a listed length is read in one request")(new RunFixture {
    writeEntry(0, otherRun, 1, None, committed(0))
    private val length = result(storage.entries()).head.length
    assert(result(entries.read(0, Some(length))).logged.exists(_.id == idOf(0)))
    assert(store.count("readTail") == 0 && store.count("readRange") == 1)
    assert(result(entries.read(1, Some(length))) == EntryFound.Absent)
  })

  test("an entry that was created again since the listing is read with its own length")(new RunFixture {
    writeEntry(0, otherRun, 1, None, committed(0))
    private val length = result(storage.entries()).head.length
    for (listed <- Seq(length - 1, length + 1, 1L))
      assert(result(entries.read(0, Some(listed))).logged.exists(_.id == idOf(0)), s"length $listed instead of $length")
    store.memory.begin(Put(location.entry(1), Payload(content)))
    assert(result(entries.read(1, Some(content.length.toLong))) == EntryFound.Plain)
    private val copies = new DiskCache(new MapFiles, 1 << 20, storage.runtime)
    private val copying = new EntryReader(storage, 1 << 20, Some(copies -> otherRun), _ => Some(length - 1))
    for (_ <- 1 to 2) assert(result(copying.read(0)).logged.exists(_.id == idOf(0)), "whatever the local disk has")
  })

  test("an entry that was read damaged is read from storage again, and not from the local disk")(new RunFixture {
    writeEntry(0, otherRun, 1, None, committed(0))
    private val path = location.entry(0)
    private val whole = result(storage.read(path, Read(path, 1 << 20))).get
    private val copies = new DiskCache(new MapFiles, 1 << 20, storage.runtime)
    private val copying = new EntryReader(storage, 1 << 20, Some(copies -> otherRun))
    store.memory.begin(Replace(path, Payload(whole.updated(whole.length - 100, 99.toByte))))
    for (_ <- 1 to 2) assert(failure(copying.read(0)).isInstanceOf[DamagedLogException])
    store.memory.begin(Replace(path, Payload(whole)))
    assert(result(copying.read(0)).logged.exists(_.id == idOf(0)))
  })

  test("the memory of an entry grows with the snapshots that it lists")(new RunFixture {
    writeEntry(1000, otherRun, 1, None, committed(1000))
    writeEntryNaming((0L until 1000L).toVector, 1001, otherRun, 1, None, committed(1001))
    private def weight(batch: Long) = result(entries.read(batch)).weight.get
    assert(weight(1001) - weight(1000) > 1000 * 100)
  })
}
