package sparkdstl.log.transport

import java.io.{ByteArrayInputStream, ByteArrayOutputStream, DataInputStream, DataOutputStream}
import java.nio.charset.StandardCharsets.UTF_8

import scala.reflect.ClassTag

/**
 * Writes and reads the values of one type. Lengths and counts are checked before memory is taken.
 *
 * @param minimumSize of a value, in bytes
 */
private[transport] final class Codec[T](val minimumSize: Int)(val write: (DataOutputStream, T) => Unit)(
    val read: DataInputStream => T
) {

  /** The same bytes as another type. */
  def as[U](to: T => U)(from: U => T): Codec[U] =
    new Codec[U](minimumSize)((out, value) => write(out, from(value)))(in => to(read(in)))

  def encode(value: T): Array[Byte] = {
    val bytes = new ByteArrayOutputStream(256)
    val out = new DataOutputStream(bytes)
    write(out, value)
    out.flush()
    bytes.toByteArray
  }

  /** Fails with `IllegalArgumentException` or `EOFException` unless the bytes are one value. */
  def decode(bytes: Array[Byte]): T = {
    val in = new DataInputStream(new ByteArrayInputStream(bytes))
    val value = read(in)
    if (in.available() > 0) throw new IllegalArgumentException(s"${in.available()} bytes after the message")
    value
  }
}

private[transport] object Codec {
  val boolean: Codec[Boolean] = new Codec[Boolean](1)(_.writeBoolean(_))(_.readBoolean())
  val int: Codec[Int] = new Codec[Int](4)(_.writeInt(_))(_.readInt())
  val long: Codec[Long] = new Codec[Long](8)(_.writeLong(_))(_.readLong())

  val bytes: Codec[Array[Byte]] = new Codec[Array[Byte]](4)((out, value) => {
    out.writeInt(value.length)
    out.write(value)
  })(in => {
    val length = in.readInt()
    if (length < 0 || length > in.available()) throw new IllegalArgumentException(s"$length bytes announced")
    in.readNBytes(length)
  })

  val text: Codec[String] = bytes.as(new String(_, UTF_8))(_.getBytes(UTF_8))

  def option[T](of: Codec[T]): Codec[Option[T]] = new Codec[Option[T]](1)((out, value) => {
    out.writeBoolean(value.nonEmpty)
    value.foreach(of.write(out, _))
  })(in => Option.when(in.readBoolean())(of.read(in)))

  def vector[T](of: Codec[T]): Codec[Vector[T]] = new Codec[Vector[T]](4)((out, values) => {
    out.writeInt(values.size)
    values.foreach(of.write(out, _))
  })(in => {
    val count = in.readInt()
    if (count < 0 || count > in.available() / of.minimumSize)
      throw new IllegalArgumentException(s"$count values announced where ${in.available()} bytes are left")
    Vector.fill(count)(of.read(in))
  })

  def pair[A, B](a: Codec[A], b: Codec[B]): Codec[(A, B)] =
    new Codec[(A, B)](a.minimumSize + b.minimumSize)((out, value) => {
      a.write(out, value._1)
      b.write(out, value._2)
    })(in => (a.read(in), b.read(in)))

  def of2[A, B, T](a: Codec[A], b: Codec[B])(make: (A, B) => T)(fields: T => Option[(A, B)]): Codec[T] =
    pair(a, b).as(make.tupled)(fields(_).get)

  def of3[A, B, C, T](a: Codec[A], b: Codec[B], c: Codec[C])(make: (A, B, C) => T)(
      fields: T => Option[(A, B, C)]
  ): Codec[T] = pair(a, pair(b, c)).as { case (a, (b, c)) => make(a, b, c) } { value =>
    val (a, b, c) = fields(value).get
    (a, (b, c))
  }

  def of4[A, B, C, D, T](a: Codec[A], b: Codec[B], c: Codec[C], d: Codec[D])(make: (A, B, C, D) => T)(
      fields: T => Option[(A, B, C, D)]
  ): Codec[T] = pair(pair(a, b), pair(c, d)).as { case ((a, b), (c, d)) => make(a, b, c, d) } { value =>
    val (a, b, c, d) = fields(value).get
    ((a, b), (c, d))
  }

  /** A subtype, for [[oneOf]]. */
  final class Kind[T](val codec: Codec[T], tag: ClassTag[T]) {
    def is(value: Any): Boolean = tag.runtimeClass.isInstance(value)

    def write(out: DataOutputStream, value: Any): Unit = codec.write(out, value.asInstanceOf[T])
  }

  def kind[T](codec: Codec[T])(implicit tag: ClassTag[T]): Kind[T] = new Kind(codec, tag)

  /** The only value of its type. */
  def only[T](value: T)(implicit tag: ClassTag[T]): Kind[T] = kind(new Codec[T](0)((_, _) => ())(_ => value))

  /** Values of several types, each with the number of its type in a byte before it. */
  def oneOf[T](kinds: Kind[_ <: T]*): Codec[T] = new Codec[T](1)((out, value) => {
    val number = kinds.indexWhere(_.is(value))
    out.writeByte(number)
    kinds(number).write(out, value)
  })(in => {
    val number = in.readByte().toInt
    kinds.lift(number).getOrElse(throw new IllegalArgumentException(s"unknown message $number")).codec.read(in)
  })
}
